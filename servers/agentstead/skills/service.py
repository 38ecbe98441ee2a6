"""What the skills server does, as its face, the command line and others call it."""

from agentstead.skills.authoring import skill_validate
from agentstead.skills.finding import skill_explain, skill_list
from agentstead.skills.switching import skill_switch
from agentstead.skills.trusting import Trusted, trust_skills, untrust_skills
from agentstead.skills.using import skill_activate, skill_deactivate, skill_read

__all__ = [
    "Trusted",
    "skill_activate",
    "skill_deactivate",
    "skill_explain",
    "skill_list",
    "skill_read",
    "skill_switch",
    "skill_validate",
    "trust_skills",
    "untrust_skills",
]
