// Preact without a compiler: html`<p>...</p>` is an element, and values in it become text nodes.

import { h } from 'preact'
import htm from 'htm'

export const html = htm.bind(h)
