/* The distance of two words, for "did you mean". */
#include "base/base.h"

size_t text_distance(const char *one, size_t one_len, const char *other, size_t other_len)
{
        size_t rows[3][DISTANCE_LEN_MAX + 1];
        if (one_len > DISTANCE_LEN_MAX || other_len > DISTANCE_LEN_MAX)
                return DISTANCE_LEN_MAX;
        for (size_t k = 0; k <= other_len; k++)
                rows[0][k] = k;
        for (size_t i = 1; i <= one_len; i++) {
                size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
                row[0] = i;
                for (size_t k = 1; k <= other_len; k++) {
                        bool same = one[i - 1] == other[k - 1];
                        row[k] = min_u64(min_u64(above[k] + 1, row[k - 1] + 1), above[k - 1] + !same);
                        if (i > 1 && k > 1 && one[i - 1] == other[k - 2] && one[i - 2] == other[k - 1])
                                row[k] = min_u64(row[k], before[k - 2] + 1);
                }
        }
        return rows[one_len % 3][other_len];
}
