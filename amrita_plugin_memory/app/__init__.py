"""The composition root: builds the services from settings and ports. Wires, never decides."""
