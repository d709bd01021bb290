"""Estimators of tables as converters write them, brought to operators that networks have."""
