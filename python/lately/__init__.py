"""Have I seen this key lately?"""
