"""MiniCPM-o 2.6: MiniCPM-V's way of seeing, with parts for sound that are left out when loading."""

from __future__ import annotations

from types import MappingProxyType

from vlmfair.models.families.minicpm_v import MiniCPMVFamily


class MiniCPMOFamily(MiniCPMVFamily):
    """MiniCPMO without its audio and speech parts."""

    name = "minicpm_o"
    architectures = ("MiniCPMO",)
    load_options = MappingProxyType({"init_vision": True, "init_audio": False, "init_tts": False})


FAMILY = MiniCPMOFamily()
