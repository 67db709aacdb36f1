"""Tokens that travel to their experts and back.

Its files, in the order of the text: `routing`, `exchange`, `capacity`, `without_drops`, `balance`, `training`,
`tokens`.
"""
