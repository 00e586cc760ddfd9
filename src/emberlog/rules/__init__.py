"""Rules, seen from what they are evaluated for: from one change of their body (`changes`) or from their head (`heads`).

All evaluators lower these values; none derives its own.
"""
