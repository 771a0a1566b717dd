"""ONNX models: load files, and run them as compiled programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.onnx.model import Backend, Model, load, supported_operators
    from tecomp.onnx.model_report import ModelReport, check

__all__ = ["Backend", "Model", "ModelReport", "check", "load", "supported_operators"]

__getattr__, __dir__ = lazy_names(__name__)
