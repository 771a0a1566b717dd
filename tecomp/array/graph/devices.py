"""Devices of arrays, under the name that this package reads them by."""

from tecomp.ptensor.devices import CPU as CPU
from tecomp.ptensor.devices import check_dtype as check_dtype
from tecomp.ptensor.devices import default_dtype as default_dtype
from tecomp.ptensor.devices import device_name as device_name
from tecomp.ptensor.devices import dtypes_of as dtypes_of
from tecomp.ptensor.devices import is_apart as is_apart
from tecomp.ptensor.devices import known_devices as known_devices
from tecomp.ptensor.devices import on_its_device as on_its_device
from tecomp.ptensor.devices import target_of as target_of
