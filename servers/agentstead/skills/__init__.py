"""Which instructions may an agent use here, where do they come from, and who allowed them."""
