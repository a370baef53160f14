"""From compiled programs to collections."""
