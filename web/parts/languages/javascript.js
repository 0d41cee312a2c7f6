// JavaScript and TypeScript for the editor, loaded when one of them is chosen.
import { javascript as language } from '@codemirror/lang-javascript'

export const javascript = () => language()
export const typescript = () => language({ typescript: true })
