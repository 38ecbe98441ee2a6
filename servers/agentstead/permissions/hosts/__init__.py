"""The dialects in which hosts ask about their own tools."""
