// Bash for the editor, loaded when it is chosen.
import { StreamLanguage } from '@codemirror/language'
import { shell } from '@codemirror/legacy-modes/mode/shell'

export const bash = () => StreamLanguage.define(shell)
