"""Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union


class _VolumeRequest(TypedDict):
    name: str


class VolumeRequest(_VolumeRequest, total=False):
    """A request for a volume.  A file system of the caller's that outlives programs."""

    size_bytes: int


class VolumeInfo(TypedDict):
    """A volume.  A file system that outlives programs."""

    name: str
    size_bytes: int
    path: str
    created_at: str


class VolumeList(TypedDict):
    """Volumes."""

    volumes: List[VolumeInfo]


class _ModelUsage(TypedDict):
    calls: int
    usage_missing: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_nanousd: int
    cost_usd: str


class ModelUsage(_ModelUsage, total=False):
    """Usage of models.  Sums of what servers of models reported."""

    component: str
    model: str
    tenant: str
    key: str


class ModelUsageReport(TypedDict):
    """A report of usage."""

    since: Optional[str]
    by: str
    total: ModelUsage
    usage: List[ModelUsage]


class ImageInfo(TypedDict):
    """An image.  A root file system in which programs can run."""

    name: str
    id: str
    kind: str
    digest: str
    created_at: str
    size_bytes: int
    files: int
    interpreters: List[ImageInterpreter]
    libraries: List[str]


class ImageInterpreter(TypedDict):
    """An interpreter of an image."""

    name: str
    path: str
    version: str


class _ImageList(TypedDict):
    images: List[ImageInfo]


class ImageList(_ImageList, total=False):
    """Images."""

    next: str


class LayerRequest(TypedDict, total=False):
    """A request for a layer.  An immutable folder of packages of one language."""

    image: str
    packages: Union[List[str], str, Dict[str, List[str]]]
    requirements: str
    lock: str


class LayerInfo(TypedDict):
    """A layer.  An immutable folder of packages."""

    id: str
    language: str
    runtime: str
    own: bool
    pinned: bool
    packages: Union[List[str], str, Dict[str, List[str]]]
    notes: List[str]
    size_bytes: int
    files: int
    created_at: str
    used_at: str


class _LayerList(TypedDict):
    layers: List[LayerInfo]
    truncated: bool


class LayerList(_LayerList, total=False):
    """Layers."""

    next: str
