"""Turn books into audiobooks: cut into passages, speak each into a journal, export one audio file."""
