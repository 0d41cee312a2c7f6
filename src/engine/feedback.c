/*
 * Advice by the type of an exception, for a model that will try again.  The type is what the interpreter
 * reported over the private channel, never a word found in the output: printing "NameError" triggers nothing.
 */
#include "engine/verdict.h"

static const struct {
        const char *type, *advice;
} table[] = {
        { "NameError", "Variable or function not defined. Check spelling and scope." },
        { "UnboundLocalError", "Variable or function not defined. Check spelling and scope." },
        { "ReferenceError", "Variable or function not defined. Check spelling and scope." },
        { "TypeError", "Wrong type passed to function. Check argument types." },
        { "ValueError", "Invalid value for operation. Check parameter constraints." },
        { "RangeError", "Invalid value for operation. Check parameter constraints." },
        { "UnicodeDecodeError", "The bytes are not in this encoding. Name the encoding, or read the file in binary mode." },
        { "IndexError", "List index out of range. Check bounds." },
        { "KeyError", "Dictionary key not found. Check key existence." },
        { "AttributeError", "Object has no such attribute. Check method/attribute name." },
        { "ImportError", "Missing import. Add 'import X' or 'from X import Y'." },
        { "ModuleNotFoundError", "The module is not installed in this image. Use the standard library or an installed package." },
        { "SyntaxError", "Python syntax error. Check indentation, brackets, colons." },
        { "IndentationError", "Indentation error. Use the same number of blanks for each line of a block." },
        { "TabError", "Indentation mixes tabs and blanks. Use blanks only." },
        { "ZeroDivisionError", "Division by zero. Add guard for zero denominator." },
        { "RecursionError", "Recursion depth exceeded. Add base case or switch to iteration." },
        { "TimeoutError", "Code timed out. Check for infinite loops or optimize." },
        { "MemoryError", "Out of memory. Process the data in parts, or use generators." },
        { "FileNotFoundError", "File not found. Check the name; input files are in the home directory." },
        { "PermissionError", "Not permitted in the sandbox. Write below the home directory or /tmp." },
        { "ConnectionRefusedError", "There is no network in the sandbox. Work with the input files." },
        { "AssertionError", "An assertion failed. Check the logic for the case that it names." },
        { "StopIteration", "The iterator is exhausted. Check for the end before next()." },
};

const char *feedback_for_type(const char *type)
{
        for (size_t i = 0; type && i < ARRAY_LEN(table); i++)
                if (strcmp(table[i].type, type) == 0)
                        return table[i].advice;
        return NULL;
}
