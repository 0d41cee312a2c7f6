/* Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit. */

/** A request for a volume.  A file system of the caller's that outlives programs. */
export interface VolumeRequest {
  /** Its name: a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit. Programs have it at /mnt/NAME. */
  name: string
  /** Its size, which is taken from the disk at once. The file system itself needs a part of it. */
  size_bytes?: number
}

/** A volume.  A file system that outlives programs. */
export interface VolumeInfo {
  /** Its name, for the field volumes of requests. */
  name: string
  /** Its size. */
  size_bytes: number
  /** Where programs have it: /mnt/NAME. */
  path: string
  /** When it was made, as RFC 3339 has it. */
  created_at: string
}

/** Volumes. */
export interface VolumeList {
  /** Those of the caller, by name. */
  volumes: VolumeInfo[]
}

/** Usage of models.  Sums of what servers of models reported. */
export interface ModelUsage {
  /** With by=component: the component that called. */
  component?: string
  /** With by=model: the model. */
  model?: string
  /** With by=key: the tenant of the key. */
  tenant?: string
  /** With by=key: the key's id; empty for callers without a key. */
  key?: string
  /** Requests to a server. */
  calls: number
  /** Those of them that the server answered without usage. */
  usage_missing: number
  /** Tokens of the prompts. */
  prompt_tokens: number
  /** Tokens of the answers. */
  completion_tokens: number
  /** Both together. */
  total_tokens: number
  /** Those of the prompts that the server had cached. */
  cached_tokens: number
  /** Those of the answers that were thought and not said. */
  reasoning_tokens: number
  /** Cost by the prices of the settings, in thousand-millionths of a US dollar. */
  cost_nanousd: number
  /** The same in US dollars. */
  cost_usd: string
}

/** A report of usage. */
export interface ModelUsageReport {
  /** The begin of the first day that counts, as RFC 3339 has it; null: since the beginning. */
  since: string | null
  /** component, model or key. */
  by: string
  /** All sums together. */
  total: ModelUsage
  /** The sums, those with the highest cost first. */
  usage: ModelUsage[]
}

/** An image.  A root file system in which programs can run. */
export interface ImageInfo {
  /** Its name, for the field image of requests. */
  name: string
  /** Its id, another one for each import. */
  id: string
  /** The archive that it was imported from: tar, docker or oci. */
  kind: string
  /** sha256: and the hash of the image's configuration, or of an archive of the kind tar. */
  digest: string
  /** When it was imported, as RFC 3339 has it. */
  created_at: string
  /** Bytes of all files of all layers. */
  size_bytes: number
  /** Files, folders and links of all layers. */
  files: number
  /** What programs can be run with. */
  interpreters: ImageInterpreter[]
  /** Distributions of Python and their versions, such as numpy 1.24.2. */
  libraries: string[]
}

/** An interpreter of an image. */
export interface ImageInterpreter {
  /** python, node or bash. */
  name: string
  /** Its path inside. */
  path: string
  /** Its version as far as the name of its file has it, such as 3.11; or an empty text. */
  version: string
}

/** Images. */
export interface ImageList {
  /** By name. system, data and small, which are the host's own file system, are not listed. */
  images: ImageInfo[]
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}

/** A request for a layer.  An immutable folder of packages of one language. */
export interface LayerRequest {
  /** The image of the programs that will have the layer. Default: the host's own file system. */
  image?: string
  /** Packages, such as requests==2.31.* or node:left-pad@1; a name alone is of Python. */
  packages?: string[] | string | { python?: string[]; node?: string[] }
  /** The same as the text of a requirements file: a package in each line, and with --hash options a lock. */
  requirements?: string
  /** Packages of Node as the text of a package-lock.json, of lockfileVersion 2 or 3. */
  lock?: string
}

/** A layer.  An immutable folder of packages. */
export interface LayerInfo {
  /** Its id. */
  id: string
  /** python or javascript. */
  language: string
  /** Version of the interpreter. */
  runtime: string
  /** The layer is the caller's; others came from an administrator, and are for all. */
  own: boolean
  /** The layer was made from a lock, and does not expire. */
  pinned: boolean
  /** Its packages and their versions, such as six==1.16.0. */
  packages: string[] | string | { python?: string[]; node?: string[] }
  /** What was found as the layer was made, such as .pth files, which have no effect. */
  notes: string[]
  /** Bytes of all files. */
  size_bytes: number
  /** Files, folders and links. */
  files: number
  /** When the layer was made, as RFC 3339 has it. */
  created_at: string
  /** When the layer was last asked for. */
  used_at: string
}

/** Layers. */
export interface LayerList {
  /** Oldest use first. */
  layers: LayerInfo[]
  /** There are more than this page has. */
  truncated: boolean
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}
