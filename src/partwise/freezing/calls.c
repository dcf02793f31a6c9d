/* Calls a loop with Python's arguments: finds the code that was compiled for their types, lays them out as numba does, gives up
   the interpreter's lock, calls, and makes Python objects of what comes back.

   No header and no symbol of Python is needed: functions of the stable interface are handed in once (`pw_init`), so that one
   library serves every version of Python. What is written here after that is written under the lock.

   A type is a string (`freezing.types`):
     i int, d float, b bool, n None
     A kind itemsize ndim layout readonly      an array: kind one of "iufb", digits, layout one of "CFA", "0" or "1"
     T class class fields ...                  a tuple: the number of its class in two digits and how many fields, all from '!' on
   A result likewise: i d b n f(loat32) l(int32), "( fields ..." a tuple, "a dtype ndim" an array. */
#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

typedef void *object;
typedef union { void *p; int64_t i; double d; } slot;
typedef struct {
    void *data; object owner; intptr_t size, itemsize; int readonly, ndim;
    char *format; intptr_t *shape, *strides, *suboffsets; void *internal;
} view;
typedef int32_t (*code)(void *result, void *error, const slot *arguments);
typedef struct { const char *types; code call; int slots; const char *result; } Compiled;
typedef struct { const Compiled *compiled; int n; } Loop;
extern const Loop pw_loops[];
extern const int pw_n_loops;

#define DIGIT(c) ((c) - '!')
enum { BASE = 90, CLASSES = 4096, SLOTS = 1024, RESULTS = 64, MOST_LOOPS = 1024 };

#define FUNCTIONS \
    F(int, get_buffer, (object, view *, int)) F(void, release, (view *)) F(object, type_of, (object)) F(void, forget, (object)) \
    F(void, keep, (object)) F(intptr_t, tuple_size, (object)) F(object, tuple_item, (object, intptr_t)) \
    F(long long, as_int, (object)) F(double, as_float, (object)) F(int, is_true, (object)) F(void, clear_error, (void)) \
    F(object, error, (void)) F(object, unlock, (void)) F(void, lock, (object)) F(object, from_float, (double)) \
    F(object, from_int, (long long)) F(object, from_bool, (long)) F(object, new_tuple, (intptr_t)) \
    F(int, set_item, (object, intptr_t, object)) F(object, call, (object, ...))
#define F(result, name, arguments) result(*name) arguments;
static struct {
    FUNCTIONS
    object none, not_here, raise, array, Int, Float, Bool, Array, Memmap, Int64, Float64, Bool_;
} py;
#undef F
static object classes[CLASSES]; /* the tuples that loops take, by number; 0 where it is not imported yet */
static int latest[MOST_LOOPS]; /* of each loop, what fitted last: most calls are like the one before */

EXPORTED void pw_init(void **table, int n) {
    for (int k = 0; k < n; k++) ((void **)&py)[k] = table[k];
}
EXPORTED void pw_class(int number, object class) {
    if (number >= 0 && number < CLASSES) classes[number] = class;
}

static char kind_of(const char *format) {
    if (!format || !format[0] || format[1]) return 0; /* other byte orders and records have longer ones */
    switch (format[0]) {
        case '?': return 'b';
        case 'b': case 'h': case 'i': case 'l': case 'q': return 'i';
        case 'B': case 'H': case 'I': case 'L': case 'Q': return 'u';
        case 'e': case 'f': case 'd': return 'f';
    }
    return 0;
}

static int is_contiguous(const view *v, int fortran) {
    intptr_t step = v->itemsize;
    for (int k = 0; k < v->ndim; k++)
        if (v->shape[k] == 0) return 1;
    for (int k = 0; k < v->ndim; k++) {
        int d = fortran ? k : v->ndim - 1 - k;
        if (v->shape[d] != 1 && v->strides[d] != step) return 0;
        step *= v->shape[d];
    }
    return 1;
}

static const char *put_array(const char *t, object value, slot **out) {
    view v;
    if (py.get_buffer(value, &v, 0x1c)) { /* PyBUF_RECORDS_RO */
        py.clear_error();
        return 0;
    }
    slot *a = *out;
    int ndim = t[2] - '0';
    int fits = kind_of(v.format) == t[0] && v.itemsize == t[1] - '0' && v.ndim == ndim && v.readonly == t[4] - '0'
        && (uintptr_t)v.data % v.itemsize == 0;
    fits = fits && t[3] == (is_contiguous(&v, 0) ? 'C' : is_contiguous(&v, 1) ? 'F' : 'A');
    if (fits) { /* nobody owns it as far as the loop knows: the caller keeps the arguments alive */
        a[0].p = a[1].p = 0;
        a[2].i = v.size / v.itemsize;
        a[3].i = v.itemsize;
        a[4].p = v.data;
        for (int k = 0; k < ndim; k++) {
            a[5 + k].i = v.shape[k];
            a[5 + ndim + k].i = v.strides[k];
        }
        *out = a + 5 + 2 * ndim;
    }
    py.release(&v);
    return fits ? t + 5 : 0;
}

/* Writes a value as the arguments it becomes; returns where the next type begins, or 0 if the value is of another type. */
static const char *put(const char *t, object value, slot **out) {
    object type = py.type_of(value);
    py.forget(type); /* the value keeps it */
    switch (*t++) {
        case 'i':
            if (type != py.Int && type != py.Int64) return 0;
            (*out)->i = py.as_int(value);
            if ((*out)->i == -1 && py.error()) {
                py.clear_error();
                return 0;
            }
            break;
        case 'd':
            if (type != py.Float && type != py.Float64) return 0;
            (*out)->d = py.as_float(value);
            break;
        case 'b':
            if (type != py.Bool && type != py.Bool_) return 0;
            (*out)->i = py.is_true(value);
            break;
        case 'n':
            if (value != py.none) return 0;
            (*out)->p = 0;
            break;
        case 'A': return type == py.Array || type == py.Memmap ? put_array(t, value, out) : 0;
        case 'T': {
            int class = DIGIT(t[0]) * BASE + DIGIT(t[1]), n = DIGIT(t[2]);
            t += 3;
            if (type != classes[class] || py.tuple_size(value) != n) return 0;
            for (int k = 0; k < n && t; k++) t = put(t, py.tuple_item(value, k), out);
            return t;
        }
        default: return 0;
    }
    ++*out;
    return t;
}

static const void *next(const char **at, int size) { /* fields lie where their size divides the address */
    uintptr_t here = ((uintptr_t)*at + size - 1) / size * size;
    *at = (const char *)here + size;
    return (const void *)here;
}

static object get(const char **t, const char **at) {
    switch (*(*t)++) {
        case 'd': return py.from_float(*(const double *)next(at, 8));
        case 'i': return py.from_int(*(const int64_t *)next(at, 8));
        case 'f': return py.from_float(*(const float *)next(at, 4));
        case 'l': return py.from_int(*(const int32_t *)next(at, 4));
        case 'b': return py.from_bool(*(const char *)next(at, 1) & 1);
        case '(': {
            int n = DIGIT(*(*t)++);
            object made = py.new_tuple(n);
            for (int k = 0; k < n && made; k++) {
                object field = get(t, at);
                if (!field) {
                    py.forget(made);
                    return 0;
                }
                py.set_item(made, k, field);
            }
            return made;
        }
        case 'a': { /* owner, parent, entries, itemsize, data, shape, strides */
            int dtype = *(*t)++, ndim = *(*t)++ - '0', n = 5 + ndim;
            object fields = py.new_tuple(n + 1);
            for (int k = 0; k < n && fields; k++) py.set_item(fields, k, py.from_int(*(const int64_t *)next(at, 8)));
            *at += 8 * ndim;
            if (!fields) return 0;
            py.set_item(fields, n, py.from_int(dtype));
            object made = py.call(py.array, fields, (object)0);
            py.forget(fields);
            return made;
        }
    }
    py.keep(py.none);
    return py.none;
}

/* What the loop returns; `not_here` if nothing was compiled for arguments of these types; 0 with an error set. */
EXPORTED object pw_call(int loop, object arguments) {
    slot slots[SLOTS], *end;
    int64_t result[RESULTS];
    void *error = 0;
    intptr_t n = py.tuple_size(arguments);
    if (loop < 0 || loop >= pw_n_loops) n = -1;
    for (int k = 0; n >= 0 && k < pw_loops[loop].n; k++) {
        int which = (latest[loop] + k) % pw_loops[loop].n;
        const Compiled *c = &pw_loops[loop].compiled[which];
        const char *t = c->types;
        end = slots;
        for (intptr_t a = 0; a < n && t; a++) t = put(t, py.tuple_item(arguments, a), &end);
        if (!t || *t || end - slots != c->slots) continue;
        latest[loop] = which;
        object state = py.unlock();
        int32_t status = c->call(result, &error, slots);
        py.lock(state);
        if (status == 0 || status == -2) { /* -2: None */
            const char *type = status ? "n" : c->result, *at = (const char *)result;
            return get(&type, &at);
        }
        object number = py.from_int(status), where = py.from_int((intptr_t)error);
        object raised = py.call(py.raise, number, where, (object)0);
        py.forget(number);
        py.forget(where);
        return raised;
    }
    py.keep(py.not_here);
    return py.not_here;
}
