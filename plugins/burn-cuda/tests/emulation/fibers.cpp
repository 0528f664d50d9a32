// Runs the threads of a block one after the other, as fibers where a kernel synchronizes them: a fiber
// waits in a state until all others of its block, or warp, have reached the same barrier.
#include <cstdlib>
#include <ucontext.h>
#include <vector>

using namespace std;

struct Index3 {
    unsigned x, y, z;
};
Index3 threadIdx, blockIdx, blockDim, gridDim;
enum State { READY, AT_BLOCK, AT_WARP, DONE };
struct Fiber {
    ucontext_t context;
    State state;
    char* stack;
};
static vector<Fiber> fibers;
static ucontext_t scheduler;
unsigned running;
unsigned long long shuffled[1024];
static const size_t STACK = 1 << 16;

void wait_at(State state) {
    fibers[running].state = state;
    swapcontext(&fibers[running].context, &scheduler);
}
static void (*body)();
static void enter() {
    body();
    fibers[running].state = DONE;
    swapcontext(&fibers[running].context, &scheduler);
}

static bool released(unsigned i, unsigned count) {
    if (fibers[i].state == AT_BLOCK) {
        for (unsigned j = 0; j < count; ++j)
            if (fibers[j].state != AT_BLOCK && fibers[j].state != DONE) return false;
        return true;
    }
    for (unsigned j = i & ~31u; j < count && j < (i & ~31u) + 32; ++j)
        if (fibers[j].state != AT_WARP && fibers[j].state != DONE) return false;
    return true;
}

static void run_fibers(unsigned count) {
    while (fibers.size() < count) {
        Fiber fiber;
        fiber.stack = (char*)malloc(STACK);
        fibers.push_back(fiber);
    }
    for (unsigned i = 0; i < count; ++i) {
        getcontext(&fibers[i].context);
        fibers[i].context.uc_stack.ss_sp = fibers[i].stack;
        fibers[i].context.uc_stack.ss_size = STACK;
        fibers[i].context.uc_link = &scheduler;
        makecontext(&fibers[i].context, enter, 0);
        fibers[i].state = READY;
    }
    for (;;) {
        bool any = false, alive = false;
        for (unsigned i = 0; i < count; ++i) {
            if (fibers[i].state == DONE) continue;
            alive = true;
            if (fibers[i].state != READY) continue;
            any = true;
            running = i;
            threadIdx.x = i;
            swapcontext(&scheduler, &fibers[i].context);
        }
        if (!alive) return;
        if (any) continue;
        vector<unsigned> free;
        for (unsigned i = 0; i < count; ++i)
            if (fibers[i].state != DONE && released(i, count)) free.push_back(i);
        if (free.empty()) abort();  // deadlock
        for (unsigned i : free) fibers[i].state = READY;
    }
}

void run_grid(const unsigned* grid, const unsigned* block, bool waits, void (*kernel)()) {
    body = kernel;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], 1, 1};
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                if (waits) {
                    run_fibers(block[0]);
                    continue;
                }
                for (unsigned i = 0; i < block[0]; ++i) {
                    threadIdx.x = i;
                    body();
                }
            }
}
