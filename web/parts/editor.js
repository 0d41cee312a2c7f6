// The editor: CodeMirror with Python; other languages are loaded when they are chosen.

import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { pythonLanguage } from '@codemirror/lang-python'
import { LanguageSupport, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language'
import { Compartment, EditorState } from '@codemirror/state'
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { classHighlighter } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'
import { html } from './view.js'

const LANGUAGES = {
  python: async () => new LanguageSupport(pythonLanguage),
  javascript: async () => (await import('./languages/javascript.js')).javascript(),
  typescript: async () => (await import('./languages/javascript.js')).typescript(),
  bash: async () => (await import('./languages/bash.js')).bash(),
}

// Colours are in style.css, by the class names of classHighlighter.
const theme = EditorView.theme({
  '&': { fontSize: '13px' },
  '.cm-content': { padding: '8px 0' },
})

const nonce = () => document.querySelector('meta[name=csp-nonce]').content

/** `onRun` is called by Ctrl+Enter (Cmd+Enter).  Escape and then Tab leave the editor. */
export function Editor({ value, language, label, onChange, onRun }) {
  const place = useRef()
  const view = useRef()
  const latest = useRef({})
  latest.current = { onChange, onRun }

  useEffect(() => {
    const syntax = new Compartment()
    const unit = new Compartment()
    view.current = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: value,
        extensions: [
          EditorView.cspNonce.of(nonce()),
          keymap.of([{ key: 'Mod-Enter', run: () => { latest.current.onRun?.(); return Boolean(latest.current.onRun) } },
            ...defaultKeymap, ...historyKeymap, indentWithTab]),
          lineNumbers(), history(), drawSelection(), highlightActiveLine(), indentOnInput(), bracketMatching(),
          syntaxHighlighting(classHighlighter), theme, syntax.of([]), unit.of(indentUnit.of('    ')),
          EditorState.tabSize.of(4),
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
          EditorView.updateListener.of((update) => { if (update.docChanged) latest.current.onChange(update.state.doc.toString()) }),
        ],
      }),
    })
    view.current.parts = { syntax, unit }
    return () => view.current.destroy()
  }, [])

  useEffect(() => {
    const editor = view.current
    if (editor.state.doc.toString() !== value) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } })
  }, [value])

  useEffect(() => {
    const editor = view.current
    let wanted = true
    const { syntax, unit } = editor.parts
    const load = LANGUAGES[language]
    Promise.resolve(load ? load() : []).then((extension) => {
      if (wanted) editor.dispatch({ effects: [syntax.reconfigure(extension), unit.reconfigure(indentUnit.of(language === 'python' ? '    ' : '  '))] })
    })
    return () => { wanted = false }
  }, [language])

  return html`<div class="editor" ref=${place}></div>`
}
