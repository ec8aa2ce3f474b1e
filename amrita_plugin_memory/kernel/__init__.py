"""Words every room uses: errors, scope, clock, locks, text. Imports nothing of ours and does no input or output."""
