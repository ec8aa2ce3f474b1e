"""`/memory …`: parsed, dispatched to the services, rendered as text. Knows no bot framework."""
