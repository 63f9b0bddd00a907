// Replaces C's assert: one that fails in a kernel stops it and names the line. As in C, each inclusion redefines it.
#pragma GCC system_header
#include_next <assert.h>

#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#include "cuda_on_cpu/launch.h"
#define assert(condition) ((condition) ? (void)0 : ::cuda_on_cpu::trap("assert(" #condition ") does not hold", __LINE__))
#endif
