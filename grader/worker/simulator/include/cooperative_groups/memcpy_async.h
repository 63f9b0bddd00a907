// In CUDA's place: the group's first thread copies, and a thread that does not wait may come before it.
#pragma once
#pragma GCC system_header
#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class Group, class To, class From>
static void memcpy_async(const Group& group, To* to, const From* from, size_t bytes) {
    if (group.thread_rank() == 0) memcpy(to, from, bytes);
}
template <class Group>
static void wait(const Group& group, int line = __builtin_LINE()) { group.sync(line); }
template <unsigned Stages, class Group>
static void wait_prior(const Group& group, int line = __builtin_LINE()) { group.sync(line); }

}  // namespace cooperative_groups
