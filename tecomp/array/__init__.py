"""Arrays as the array-API standard has them: lazy, compiled, with devices and teams."""
