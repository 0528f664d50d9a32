; What runs compiled programs: checks of arguments, calls of kernels, worker threads, products.
; Names after a dollar sign are replaced before it is compiled.

@burn_ndarray = external global i8
@burn_state = external global ptr

declare ptr @PyLong_FromLong(i64)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)
declare i32 @sched_yield()
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare void @burn_sgemm(i32, i32, i32, $int, $int, $int, float, ptr, $int, ptr, $int, float, ptr, $int)
declare void @burn_dgemm(i32, i32, i32, $int, $int, $int, double, ptr, $int, ptr, $int, double, ptr, $int)

; A method of Python (METH_FASTCALL), whose self is an array of 64-bit words:
;   0 arrays   1 numbers   2 whether Python's lock is released   3 steps   4 most words of a table
; then for each array the flags that it needs, the number of its axes, and their lengths; for each
; number whether it is a float; and for each step function, items, parts for each thread (0: one
; thread), words of its table, and for each of these an argument and what is added to it. The words
; of arguments are the addresses of the arrays, the numbers, and 0. A step with -1 parts is a check:
; its items are integers at the address in its table, all of which are 0 if nothing is wrong.
; Returns 0; 1 + the index of an array of another class, layout or shape, before any step; or what
; a check that failed has as its function, which is negative, after the steps before it.
define ptr @burn_call(ptr %self, ptr %arguments, i64 %count) {
entry:
  %pself = getelementptr i8, ptr %self, i64 $head
  %words = load ptr, ptr %pself
  %arrays = load i64, ptr %words
  %w1 = getelementptr i64, ptr %words, i64 1
  %numbers = load i64, ptr %w1
  %w2 = getelementptr i64, ptr %words, i64 2
  %releases = load i64, ptr %w2
  %w3 = getelementptr i64, ptr %words, i64 3
  %steps = load i64, ptr %w3
  %w4 = getelementptr i64, ptr %words, i64 4
  %most = load i64, ptr %w4
  %both = add i64 %arrays, %numbers
  %size = add i64 %both, 1
  %values = alloca i64, i64 %size
  %table = alloca i64, i64 %most
  %first = getelementptr i64, ptr %words, i64 5
  br label %array

array:
  %j = phi i64 [0, %entry], [%j1, %fits]
  %d = phi ptr [%first, %entry], [%dnext, %fits]
  %no_array = icmp uge i64 %j, %arrays
  br i1 %no_array, label %number, label %check
check:
  %j1 = add i64 %j, 1
  %pobject = getelementptr ptr, ptr %arguments, i64 %j
  %object = load ptr, ptr %pobject
  %ptype = getelementptr i8, ptr %object, i64 $type
  %type = load ptr, ptr %ptype
  %is_array = icmp eq ptr %type, @burn_ndarray
  br i1 %is_array, label %layout, label %unfit
layout:
  %data = getelementptr i8, ptr %object, i64 $head
  %address = load i64, ptr %data
  %paxes = getelementptr i8, ptr %data, i64 8
  %axes = load i32, ptr %paxes
  %pdims = getelementptr i8, ptr %data, i64 16
  %dims = load ptr, ptr %pdims
  %pflags = getelementptr i8, ptr %data, i64 48
  %flags = load i32, ptr %pflags
  %needed = load i64, ptr %d
  %needed32 = trunc i64 %needed to i32
  %has = and i32 %flags, %needed32
  %has_flags = icmp eq i32 %has, %needed32
  %d1 = getelementptr i64, ptr %d, i64 1
  %rank = load i64, ptr %d1
  %rank32 = trunc i64 %rank to i32
  %has_axes = icmp eq i32 %axes, %rank32
  %fits_so_far = and i1 %has_flags, %has_axes
  %dshape = getelementptr i64, ptr %d, i64 2
  %pvalue = getelementptr i64, ptr %values, i64 %j
  store i64 %address, ptr %pvalue
  br i1 %fits_so_far, label %axis, label %unfit
axis:
  %a = phi i64 [0, %layout], [%a1, %compare]
  %no_axis = icmp uge i64 %a, %rank
  br i1 %no_axis, label %fits, label %compare
compare:
  %a1 = add i64 %a, 1
  %plength = getelementptr i64, ptr %dims, i64 %a
  %length = load i64, ptr %plength
  %pexpected = getelementptr i64, ptr %dshape, i64 %a
  %expected = load i64, ptr %pexpected
  %same = icmp eq i64 %length, %expected
  br i1 %same, label %axis, label %unfit
fits:
  %dnext = getelementptr i64, ptr %dshape, i64 %rank
  br label %array
unfit:
  %wrong = call ptr @PyLong_FromLong(i64 %j1)
  ret ptr %wrong

number:
  %k = phi i64 [0, %array], [%k1, %known]
  %no_number = icmp uge i64 %k, %numbers
  br i1 %no_number, label %ready, label %convert
convert:
  %k1 = add i64 %k, 1
  %jk = add i64 %arrays, %k
  %pnumber = getelementptr ptr, ptr %arguments, i64 %jk
  %object2 = load ptr, ptr %pnumber
  %pkind = getelementptr i64, ptr %d, i64 %k
  %kind = load i64, ptr %pkind
  %is_float = icmp ne i64 %kind, 0
  br i1 %is_float, label %float, label %integer
float:
  %double = call double @PyFloat_AsDouble(ptr %object2)
  %bits = bitcast double %double to i64
  br label %converted
integer:
  %whole = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object2)
  br label %converted
converted:
  %value2 = phi i64 [%bits, %float], [%whole, %integer]
  %pvalue2 = getelementptr i64, ptr %values, i64 %jk
  store i64 %value2, ptr %pvalue2
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %known, label %raise
known:
  br label %number
raise:
  ret ptr null

ready:
  %pzero = getelementptr i64, ptr %values, i64 %both
  store i64 0, ptr %pzero
  %step0 = getelementptr i64, ptr %d, i64 %numbers
  %unlocks = icmp ne i64 %releases, 0
  br i1 %unlocks, label %unlock, label %locked
unlock:
  %thread = call ptr @PyEval_SaveThread()
  %result1 = call i64 @burn_steps(ptr %step0, i64 %steps, ptr %values, ptr %table)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %return
locked:
  %result2 = call i64 @burn_steps(ptr %step0, i64 %steps, ptr %values, ptr %table)
  br label %return
return:
  %result = phi i64 [%result1, %unlock], [%result2, %locked]
  %returned = call ptr @PyLong_FromLong(i64 %result)
  ret ptr %returned
}

define internal i64 @burn_steps(ptr %first, i64 %steps, ptr %values, ptr %table) noinline {
entry:
  br label %step
step:
  %s = phi i64 [0, %entry], [%s1, %next]
  %w = phi ptr [%first, %entry], [%behind, %next]
  %s1 = add i64 %s, 1
  %end = icmp uge i64 %s, %steps
  br i1 %end, label %return, label %begin
begin:
  %function = load ptr, ptr %w
  %w1 = getelementptr i64, ptr %w, i64 1
  %items = load i64, ptr %w1
  %w2 = getelementptr i64, ptr %w, i64 2
  %share = load i64, ptr %w2
  %w3 = getelementptr i64, ptr %w, i64 3
  %count = load i64, ptr %w3
  %w4 = getelementptr i64, ptr %w, i64 4
  %twice = mul i64 %count, 2
  %behind = getelementptr i64, ptr %w4, i64 %twice
  br label %word
word:
  %i = phi i64 [0, %begin], [%i1, %fill]
  %p = phi ptr [%w4, %begin], [%p2, %fill]
  %i1 = add i64 %i, 1
  %full = icmp uge i64 %i, %count
  br i1 %full, label %call, label %fill
fill:
  %argument = load i64, ptr %p
  %p1 = getelementptr i64, ptr %p, i64 1
  %offset = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %p, i64 2
  %pvalue = getelementptr i64, ptr %values, i64 %argument
  %value = load i64, ptr %pvalue
  %sum = add i64 %value, %offset
  %target = getelementptr i64, ptr %table, i64 %i
  store i64 %sum, ptr %target
  br label %word
call:
  %alone = icmp eq i64 %share, 0
  br i1 %alone, label %serial, label %other
other:
  %checks = icmp eq i64 %share, -1
  br i1 %checks, label %check, label %parallel
check:
  %found = load ptr, ptr %table
  br label %look
look:
  %c = phi i64 [0, %check], [%c1, %test]
  %checked = icmp uge i64 %c, %items
  br i1 %checked, label %next, label %test
test:
  %c1 = add i64 %c, 1
  %pindex = getelementptr i64, ptr %found, i64 %c
  %index = load i64, ptr %pindex
  %right = icmp eq i64 %index, 0
  br i1 %right, label %look, label %failed
failed:
  %code = ptrtoint ptr %function to i64
  ret i64 %code
serial:
  call void %function(ptr %table, i64 0, i64 %items)
  br label %next
parallel:
  call void @burn_run(ptr %function, ptr %table, i64 %items, i64 %share)
  br label %next
next:
  br label %step
return:
  ret i64 0
}

; Worker threads. Words of the state, each of the hot ones in a cache line of its own:
;   0 generation * 2**20 + parts that nothing has taken   8 parts that are done
;   16 function   17 table   18 items   19 parts   24 whether a kernel runs   32 threads
;   64 + 8 i whether worker i is blocked   65 + 8 i its lock
define internal void @burn_part(ptr %state, i64 %left) {
  %pf = getelementptr i64, ptr %state, i64 16
  %f = load atomic ptr, ptr %pf monotonic, align 8
  %pt = getelementptr i64, ptr %state, i64 17
  %t = load atomic ptr, ptr %pt monotonic, align 8
  %pi = getelementptr i64, ptr %state, i64 18
  %items = load atomic i64, ptr %pi monotonic, align 8
  %pc = getelementptr i64, ptr %state, i64 19
  %parts = load atomic i64, ptr %pc monotonic, align 8
  %number = sub i64 %parts, %left
  %a = mul i64 %items, %number
  %start = udiv i64 %a, %parts
  %b = add i64 %a, %items
  %stop = udiv i64 %b, %parts
  call void %f(ptr %t, i64 %start, i64 %stop)
  %pd = getelementptr i64, ptr %state, i64 8
  %o = atomicrmw add ptr %pd, i64 1 release
  ret void
}

; Takes parts of kernels for as long as the process runs.
define void @burn_worker(ptr %state, i64 %number) {
entry:
  %n = mul i64 %number, 8
  %nb = add i64 %n, 64
  %blocked = getelementptr i64, ptr %state, i64 %nb
  %nl = add i64 %n, 65
  %pl = getelementptr i64, ptr %state, i64 %nl
  %lock = load ptr, ptr %pl
  br label %look
look:
  %spins = phi i64 [0, %entry], [%more, %wait], [0, %take], [0, %run], [0, %sleep], [0, %again]
  %t = load atomic i64, ptr %state acquire, align 8
  %left = and i64 %t, 1048575
  %none = icmp eq i64 %left, 0
  br i1 %none, label %wait, label %take
take:
  %less = sub i64 %t, 1
  %x = cmpxchg ptr %state, i64 %t, i64 %less acq_rel monotonic
  %got = extractvalue { i64, i1 } %x, 1
  br i1 %got, label %run, label %look
run:
  call void @burn_part(ptr %state, i64 %left)
  br label %look
wait:
  call void @burn_pause()
  %more = add i64 %spins, 1
  %tired = icmp ugt i64 %spins, $spins
  br i1 %tired, label %block, label %look
block:
  store atomic i64 1, ptr %blocked seq_cst, align 8
  %t2 = load atomic i64, ptr %state seq_cst, align 8
  %left2 = and i64 %t2, 1048575
  %none2 = icmp eq i64 %left2, 0
  br i1 %none2, label %sleep, label %again
again:
  %old = atomicrmw xchg ptr %blocked, i64 0 seq_cst
  %mine = icmp eq i64 %old, 1
  br i1 %mine, label %look, label %sleep
sleep:
  %acquired = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %look
}

; Calls a kernel on parts of its items, with the workers if they are free.
define internal void @burn_run(ptr %f, ptr %table, i64 %items, i64 %share) noinline {
entry:
  %state = load ptr, ptr @burn_state
  %absent = icmp eq ptr %state, null
  br i1 %absent, label %alone, label %claim
claim:
  %po = getelementptr i64, ptr %state, i64 24
  %x = cmpxchg ptr %po, i64 0, i64 1 acq_rel monotonic
  %got = extractvalue { i64, i1 } %x, 1
  br i1 %got, label %begin, label %alone
alone:
  call void %f(ptr %table, i64 0, i64 %items)
  ret void
begin:
  %pth = getelementptr i64, ptr %state, i64 32
  %threads = load i64, ptr %pth
  %most = mul i64 %threads, %share
  %parts = call i64 @llvm.umin.i64(i64 %most, i64 %items)
  %pf = getelementptr i64, ptr %state, i64 16
  store atomic ptr %f, ptr %pf monotonic, align 8
  %pt = getelementptr i64, ptr %state, i64 17
  store atomic ptr %table, ptr %pt monotonic, align 8
  %pi = getelementptr i64, ptr %state, i64 18
  store atomic i64 %items, ptr %pi monotonic, align 8
  %pc = getelementptr i64, ptr %state, i64 19
  store atomic i64 %parts, ptr %pc monotonic, align 8
  %pd = getelementptr i64, ptr %state, i64 8
  store atomic i64 0, ptr %pd monotonic, align 8
  %t0 = load atomic i64, ptr %state monotonic, align 8
  %g0 = and i64 %t0, -1048576
  %g1 = add i64 %g0, 1048576
  %t1 = or i64 %g1, %parts
  store atomic i64 %t1, ptr %state seq_cst, align 8
  %workers = sub i64 %threads, 1
  br label %each
each:
  %i = phi i64 [0, %begin], [%next, %after]
  %all = icmp uge i64 %i, %workers
  br i1 %all, label %look, label %test
test:
  %n = mul i64 %i, 8
  %nb = add i64 %n, 64
  %blocked = getelementptr i64, ptr %state, i64 %nb
  %is = load atomic i64, ptr %blocked seq_cst, align 8
  %asleep = icmp eq i64 %is, 1
  br i1 %asleep, label %try, label %after
try:
  %old = atomicrmw xchg ptr %blocked, i64 0 seq_cst
  %was = icmp eq i64 %old, 1
  br i1 %was, label %wake, label %after
wake:
  %nl = add i64 %n, 65
  %pl = getelementptr i64, ptr %state, i64 %nl
  %lock = load ptr, ptr %pl
  call void @PyThread_release_lock(ptr %lock)
  br label %after
after:
  %next = add i64 %i, 1
  br label %each
look:
  %t = load atomic i64, ptr %state acquire, align 8
  %left = and i64 %t, 1048575
  %none = icmp eq i64 %left, 0
  br i1 %none, label %wait, label %take
take:
  %less = sub i64 %t, 1
  %y = cmpxchg ptr %state, i64 %t, i64 %less acq_rel monotonic
  %took = extractvalue { i64, i1 } %y, 1
  br i1 %took, label %run, label %look
run:
  call void @burn_part(ptr %state, i64 %left)
  br label %look
wait:
  %spins = phi i64 [0, %look], [%more, %pause]
  %done = load atomic i64, ptr %pd acquire, align 8
  %finished = icmp uge i64 %done, %parts
  br i1 %finished, label %end, label %spin
spin:
  %more = add i64 %spins, 1
  %tired = icmp ugt i64 %spins, $spins
  br i1 %tired, label %yield, label %pause
yield:
  %ignored = call i32 @sched_yield()
  br label %pause
pause:
  call void @burn_pause()
  br label %wait
end:
  store atomic i64 0, ptr %po release, align 8
  ret void
}

define internal void @burn_pause() {
  $pause
  ret void
}
$products
