// Light and dark: by the system, or as the switch says.  The choice is in localStorage.

import { computed, effect, signal } from '@preact/signals'

const STORED = 'caisson.theme'
const system = matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(system.matches)
system.addEventListener('change', () => { systemIsDark.value = system.matches })

export const THEMES = ['system', 'light', 'dark']
export const theme = signal(THEMES.includes(localStorage.getItem(STORED)) ? localStorage.getItem(STORED) : 'system')

/** What is shown; canvases are drawn again when it changes. */
export const isDark = computed(() => (theme.value === 'system' ? systemIsDark.value : theme.value === 'dark'))

effect(() => {
  localStorage.setItem(STORED, theme.value)
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
})

/** A colour of style.css by its name, such as --ink, in the theme that is shown. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
