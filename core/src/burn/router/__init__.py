"""Router: a backend that sends operations to other devices, in this process or elsewhere."""
