/* What numba's loops take from numba when they run: the allocator, and one function about shapes.

   The layout of MemInfo is numba's: loops count references in it themselves. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

typedef struct {
    size_t references;
    void (*destructor)(void *, size_t, void *);
    void *destructor_info, *data;
    size_t size;
    void *allocator;
} MemInfo;

void *NRT_Allocate(size_t size) { return malloc(size); }
void NRT_Free(void *p) { free(p); }

MemInfo *NRT_MemInfo_alloc_aligned(size_t size, unsigned align) {
    size_t room = sizeof(MemInfo) + 2 * (size_t)align;
    if (size > SIZE_MAX - room) return 0; /* the loop raises MemoryError */
    MemInfo *info = malloc(room + size);
    if (!info) return 0;
    uintptr_t base = (uintptr_t)(info + 1);
    memset(info, 0, sizeof *info);
    info->references = 1;
    info->data = (void *)(align ? (base + align - 1) / align * align : base);
    info->size = size;
    return info;
}
MemInfo *NRT_MemInfo_alloc(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }
void NRT_MemInfo_call_dtor(MemInfo *info) {
    if (info->destructor) info->destructor(info->data, info->size, info->destructor_info);
    free(info);
}
EXPORTED void pw_release(MemInfo *info) { /* an array that a loop has returned is not needed any more */
    if (info && __atomic_sub_fetch(&info->references, 1, __ATOMIC_ACQ_REL) == 0) NRT_MemInfo_call_dtor(info);
}

/* Strides of an array in another shape, without moving it; 0: impossible. In C order: no loop reshapes otherwise.

   Dimensions of 1 are left out; then groups of old and of new dimensions with equal products are matched. Within a group the old
   ones must lie side by side. */
int numba_attempt_nocopy_reshape(intptr_t n_old, const intptr_t *old, const intptr_t *steps, intptr_t n_new, const intptr_t *new,
                                 intptr_t *strides, intptr_t itemsize, int fortran) {
    intptr_t dims[32], by[32], n = 0, had = 1, wanted = 1;
    if (fortran || n_old > 32) return 0;
    for (intptr_t k = 0; k < n_old; k++) {
        had *= old[k];
        if (old[k] != 1) { dims[n] = old[k]; by[n++] = steps[k]; }
    }
    for (intptr_t k = 0; k < n_new; k++) wanted *= new[k];
    if (had != wanted) return 0;
    if (wanted == 0) {
        for (intptr_t k = 0; k < n_new; k++) strides[k] = itemsize;
        return 1;
    }
    intptr_t i = 0, j = 0;
    while (i < n && j < n_new) {
        intptr_t i_end = i + 1, j_end = j + 1, a = dims[i], b = new[j];
        while (a != b) {
            if (b < a) b *= new[j_end++];
            else a *= dims[i_end++];
        }
        for (intptr_t k = i; k + 1 < i_end; k++)
            if (by[k] != dims[k + 1] * by[k + 1]) return 0;
        strides[j_end - 1] = by[i_end - 1];
        for (intptr_t k = j_end - 1; k > j; k--) strides[k - 1] = strides[k] * new[k];
        i = i_end;
        j = j_end;
    }
    for (; j < n_new; j++) strides[j] = j ? strides[j - 1] : itemsize; /* dimensions of 1 at the end */
    return 1;
}

/* Whether this processor runs the loops: x86-64-v3, as LLVM means it. This file itself is compiled for any x86-64. */
#if defined(__x86_64__) && !defined(PW_ANY_CPU)
#include <cpuid.h>
EXPORTED int pw_supported(void) {
    unsigned a, b, c, d, low, high;
    const unsigned first = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C | bit_FMA;
    const unsigned second = bit_AVX2 | bit_BMI | bit_BMI2, lzcnt = 1u << 5;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6) return 0; /* the operating system does not keep the wide registers */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & second) != second) return 0;
    return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & lzcnt);
}
#else
EXPORTED int pw_supported(void) { return 1; }
#endif
