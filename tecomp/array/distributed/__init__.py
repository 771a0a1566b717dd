"""Arrays that are divided among the processes of a team."""
