# confine.awk FILE.s: g++'s assembly of a kernel file (x86-64, AT&T syntax), made into code that acts as device code only.
# Software fault isolation (Wahbe et al. 1993): whatever the source says, each store that may reach anything but the
# function's own frame, and each call through a pointer, is judged at run time by hooks/confined.c just before it happens.
# What g++ does not make of device code, it refuses, with the line of the source. So it needs to trust g++ only for the
# order of instructions, not for what its sanitizers leave out.
function refuse(why) {
    printf "%s:%d: error: %s\n", file[at_file], at_line, why >"/dev/stderr"
    failed = 1
    exit 1
}
# The address of an operand, once so many bytes have been pushed.
function moved(operand, bytes) {
    if (operand !~ /\(%rsp/) return operand
    return (operand ~ /^\(/ ? bytes : bytes "+") operand
}
function judged(hook, load) {
    holding = 1
    out("\tpushq\t%rdi\n\tpushfq\n" load "\tcall\tsimt_confined_" hook "\n\tpopfq\n\tpopq\t%rdi")
}
# To keep the flags takes longer than a whole judgement. So lines after a judgement are held until one shows whether they matter.
function out(line) { if (holding) held = held line "\n"; else print line }
function release(flags_matter) {
    if (!flags_matter) { gsub(/\tpushfq\n/, "\tleaq\t-8(%rsp), %rsp\n", held); gsub(/\tpopfq\n/, "\tleaq\t8(%rsp), %rsp\n", held) }
    printf "%s", held
    held = ""
    holding = 0
}
function instruction(name, line) {
    if (!holding) { print line; return }
    if (name ~ /^(cmp|test|add|sub|and|or|xor|neg)[bwlq]?$|^u?comis[sd]$|^(call|ret)/) release(0)
    else if (name ~ /^(j|set|cmov|fcmov|adc|sbb|rc[lr]|pushf|lahf)/) release(1)
    out(line)
}
function store(operand, bytes) { judged("store" bytes, "\tleaq\t" moved(operand, 16) ", %rdi\n") }
# A load, unless it is of the own frame, of a name, or of the built-in variables by theirs. One byte stands for all: g++ takes
# at most 16 at once, as a card does.
function load(operand,    segment) {
    if (operand ~ /^%st\(/) return
    if (operand ~ /^(-?[1-3]?[0-9]?[0-9]?[0-9])?\(%r[bs]p\)$/ || operand ~ /^[A-Za-z_.$][A-Za-z0-9_.$@]*(\+[0-9][0-9]?)?\(%rip\)$/) return
    if (operand ~ /^%fs:((0|40)|(threadIdx|block(Idx|Dim)|gridDim)@tpoff(\+[48])?)$/) return
    segment = sub(/^%fs:/, "", operand) ? "\taddq\t%fs:0, %rdi\n" : ""
    judged("load", "\tleaq\t" moved(operand, 16) ", %rdi\n" segment)
}
# How many bytes an instruction stores; 0: none; -1: not known.
function stored(name) {
    if (name ~ /^(cmp|test|bt[wlq]?$|push|nop|u?comis|i?mul|i?div|fld|fild|f(add|sub|mul|div|i?com)|prefetch)/) return 0
    if (name ~ /^set/) return 1
    if (name ~ /^(movss|movd|fsts|fstps|fistl|fistpl|fnstcw|stmxcsr)$/ || name ~ /^cvt[a-z0-9]*ss$/) return name == "fnstcw" ? 2 : 4
    if (name ~ /^(mov(sd|lps|hps|lpd|hpd)|fst(p?)l|fistp?ll|fistpq)$/) return 8
    if (name ~ /^(mov([au]p[sd]|dq[au])|fstpt)$/) return 16
    if (name !~ /^(mov|add|sub|inc|dec|and|or|xor|neg|not|sal|sar|shl|shr|adc|sbb|rol|ror)(abs)?[bwlq]$/) return -1
    return substr("1 2 4 8", 2 * index("bwlq", substr(name, length(name))) - 1, 1)
}
function last_comma(text) { return match(text, /, [^,]*$/) ? RSTART + 1 : 0 }
function directive(name, rest,    words) {
    if (name == ".file" && rest ~ /^[1-9]/) file[rest + 0] = substr(rest, index(rest, "\"") + 1, length(rest) - index(rest, "\"") - 1)
    if (name == ".loc") { split(rest, words, " "); at_file = words[1]; at_line = words[2] }
    if (name == ".section" && rest ~ /^\.init_array\.00099,/) { skipping = 1; return } # __tsan_init()
    if (name ~ /^\.(section|text|data|bss)$/) skipping = 0
    if (skipping) return
    if (name == ".text" || rest ~ /^\.text/ && name == ".section") { out("\t.section\tsimt_confined,\"ax\",@progbits"); return }
    if (name == ".section" && rest ~ /^\.(init|fini|preinit|ctors|dtors)/) refuse("this code would run before or after the program")
    if (name == ".section" && rest !~ /^(\.rodata|\.data\.rel\.(ro|local)|\.debug_|\.note\.|\.(bss|data)[.,]|simt_(device|constant))/)
        refuse("section " rest " is none of a kernel's")
    if (name == ".section" && rest ~ /^[^,]*,"[^"]*x/) refuse("only .text holds code")
    if (name == ".globl" && rest !~ /^step_/ || name == ".weak") return # of no concern to the program around it
    if (name == ".type" && rest ~ /^_GLOBAL__sub_/) refuse("this code would run before or after the program")
    if (name == ".type" && rest ~ /@(gnu_unique|tls)_object$/) refuse("it keeps data between launches, in " substr(rest, 1, index(rest, ",") - 1))
    if (name == ".type" && rest !~ /, @(function|object)$/) refuse(rest " is no symbol of a kernel")
    if (name == ".type" && rest ~ /@function$/ && rest ~ /^([^_.]|_[^Zs.])/) refuse("function " substr(rest, 1, index(rest, ",") - 1) " takes another's place")
    if (name !~ /^\.(file|loc|section|data|bss|cfi_[a-z_]+|globl|hidden|type|size|align|p2align|balign|string|ascii|byte|value|long|quad|[us]leb128|zero|set|local|comm|ident)$/)
        refuse("directive " name " is none of a kernel's")
    if (name == ".cfi_startproc") watched = 0
    if (name == ".cfi_endproc" && !watched && function_name !~ /^_sub_I_/) refuse("a function without the hooks of its basic blocks")
    if (name == ".cfi_endproc") out("\tud2") # a function that lacks its return must not go on into the next one
    out($0)
}
function control(name, operand) {
    if (name ~ /^j/ && operand ~ /^\*/) refuse("device code jumps through a pointer")
    if (name ~ /^j/ && operand !~ /^\.L/) refuse("device code jumps into another function") # who is called must know its caller
    if (operand ~ /^\*/) judged("call", "\tmovq\t" moved(substr(operand, 2), 16) ", %rdi\n")
    if (operand ~ /^cuda/) judged("host", "")
    if (match(operand, /^(printf|memset|sincosf?|frexpf?|modff?|remquof?|cudaGetDriverEntryPointByVersion)(@PLT)?$/)) sub(/\t[A-Za-z]+(@PLT)?$/, "\tsimt_confined_" operand)
    if (operand ~ /^__sanitizer_cov_trace_pc/) watched = 1
    instruction(name, $0)
}
FNR == 1 { split("", file) }
/^[A-Za-z0-9_.$]+:$/ || /^$/ { if (!skipping) { release(1); print }; if (/^[^.]/) { pushes = -1; function_name = $0 } next }
/^\t\./ { directive($1, substr($0, index($0, $1) + length($1) + 1)); next }
skipping { next }
/^#|;|^[^\t]/ { refuse("assembly that g++ does not make of device code: " $0) }
{
    name = $1
    rest = substr($0, index($0, $1) + length($1) + 1)
    repeated = name == "rep"
    if (repeated) { name = rest; rest = "" }
    if (name ~ /^(call|jmp|j[a-z]+)$/) { control(name, rest); next }
    if (name == "notrack" || name ~ /^(lock|repn?[ez]|sys|int|iret|hlt|[ls][gil]dt|wr|rd[fgm]|xchg|xadd|cmpxchg|xsave|xrstor|fxrstor|std$|in[bwl]|out|enter|stac)/ && name != "int3")
        refuse("instruction " name " is none of a kernel's")
    if (name ~ /^(stos|movs)[bwlq]?$/ && rest == "") {
        size = substr("1 2 4 8", 2 * index("bwlq", substr(name, 5)) - 1, 1)
        judged(repeated ? "range" size : "store" size, "")
        if (name ~ /^movs/) judged(repeated ? "from" size : "load", repeated ? "" : "\tmovq\t%rsi, %rdi\n")
        instruction(name, $0)
        next
    }
    if (repeated) refuse("instruction rep " name " is none of a kernel's")
    # The last operand is what an instruction writes.
    target = match(rest, /[^ ,]*\([^()]*\)$/) ? substr(rest, RSTART) : substr(rest, 1 + last_comma(rest))
    if (name == "pushq" && pushes >= 0 && rest ~ /^%/) pushes++
    else if (name == "movq" && rest == "%rsp, %rbp") pushes = 0
    else if (pushes >= 0) { saved = pushes; pushes = -1 }
    if (target ~ /^%[re]?bpl?$/ && !(name ~ /^(push|pop)q$/ || name rest == "movq%rsp, %rbp")) refuse("the frame pointer is changed")
    if (target ~ /^%[re]?spl?$/ && !(name ~ /^(add|sub|and|cmp)q$/ && rest ~ /^\$/ || name == "leaq" && rest ~ /^-?[0-9]*\(%r[bs]p\), / || name == "cmpq"))
        refuse("a local array of variable size, or a local variable aligned to more than 16 bytes")
    if (name == "subq" && rest ~ /^\$[0-9]+, %rsp$/) frame += substr(rest, 2) # page by page, each with a probe
    else if (name != "orq") frame = 0
    if (frame > 8192 || name == "leaq" && rest ~ /^-[0-9]+\(%rsp\), %r11$/ && -rest > 8192) refuse("local arrays of more than 8 KB in one function: a thread of a card has registers for 1 KB")
    if (name !~ /^(lea|nop|prefetch)/ && match(rest, /[^ ,]*\([^()]*\)|%fs:[^ ,]+|^[^ ,%$(]+/)) {
        from = substr(rest, RSTART, RLENGTH)
        if (from != target || stored(name) == 0) load(from)
    }
    if (target !~ /^[%$]/ || target ~ /^%fs:/) {
        size = target == "" || name ~ /^lea/ ? 0 : stored(name)
        if (size != 0 && target ~ /^%fs:/) refuse("a write to a built-in variable")
        if (size < 0) refuse("instruction " name " is none of a kernel's")
        offset = target + 0
        own = target ~ /^-[0-9]+\(%rbp\)$/ && offset >= -4096 && offset + size <= -8 * saved
        if (size > 0 && !own && !(name == "orq" && target == "(%rsp)")) store(target, size)
    }
    instruction(name, $0)
}
END { release(1); exit failed }
