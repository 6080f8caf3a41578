#include <string.h>

#include "model/base/names.h"

int oc_name_distance(const char *a, const char *b)
{
    int row[48], n = (int)strlen(b);
    if (n > 47) n = 47;
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 0; a[i] && i < 47; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < n; j++) {
            int cost = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (row[j] + 1 < cost) cost = row[j] + 1;
            if (diagonal + 1 < cost) cost = diagonal + 1;
            row[j + 1] = cost;
        }
    }
    return row[n];
}
