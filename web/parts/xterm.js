// xterm.js, in a file of its own: it is loaded when the first terminal opens.
export { FitAddon } from '@xterm/addon-fit'
export { Terminal } from '@xterm/xterm'
