"""Views that stay true: a program is evaluated once, and its relations follow the changes of its inputs."""
