"""What is said: frozen, tagged messages and the words of the state machines. No I/O."""
