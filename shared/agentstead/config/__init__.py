"""Layered settings with provenance: declared as data, read live, explained, written back with their comments kept."""

from agentstead.config.declared import PRODUCT, SERVERS_GROUP
from agentstead.config.edit import set_key
from agentstead.config.registry import Registry
from agentstead.config.setting import Setting
from agentstead.config.settings import WORKSPACE_FILE, Explanation, Origin, Settings
from agentstead.config.sheet import Fault

__all__ = [
    "PRODUCT",
    "SERVERS_GROUP",
    "WORKSPACE_FILE",
    "Explanation",
    "Fault",
    "Origin",
    "Registry",
    "Setting",
    "Settings",
    "set_key",
]
