/* Undefines the rows of fields.def after an inclusion, so that the next inclusion can define new meanings. */
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
