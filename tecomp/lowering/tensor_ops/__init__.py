"""Operations of the machine in the place of loops."""
