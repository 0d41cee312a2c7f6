/* Ends one reading of fields.def, so that the next may give its rows another meaning. */
#undef CHOICES
#undef VALUE
#undef END_CHOICES
#undef OBJECT
#undef NUM
#undef INT
#undef REAL
#undef BOOL
#undef TEXT
#undef BYTES
#undef JSON
#undef ENUM
#undef TEXTS
#undef PAIRS
#undef SUB
#undef LIST
#undef END
