# Follows the spools of attempts and frames what they grow by. Arguments: marker, state directory,
# then `id run attempt offset`, one argument each. Ends when its input does. Must hold no single quote: it is
# given to perl as one quoted word.
use strict;
use Errno qw(EINTR);
my ($mark, $base) = splice @ARGV, 0, 2;
my $linux = -r "/proc/self/stat";
$SIG{PIPE} = "DEFAULT";
sub put {
    my $data = shift;
    my $at = 0;
    while ($at < length $data) {
        my $n = syswrite STDOUT, $data, length($data) - $at, $at;
        if (!defined $n) { next if $! == EINTR; exit 1 }
        $at += $n;
    }
}
sub slurp {
    open my $f, "<", shift or return "";
    local $/;
    my $text = <$f>;
    return defined $text ? $text : "";
}
my $boot = slurp("/proc/sys/kernel/random/boot_id");
$boot = `sysctl -n kern.bootsessionuuid 2>/dev/null </dev/null` if $boot eq "";
$boot =~ s/\s+//g;
$boot = "-" if $boot eq "";
# The very process that was started: same boot, same pid, same start time, no zombie.
sub alive {
    my ($pid, $start, $its) = @_;
    return 0 if !$pid || $its ne $boot;
    if ($linux) {
        my $stat = slurp("/proc/$pid/stat");
        $stat =~ s/.*\) //s or return 0;
        my @field = split " ", $stat;
        return $field[0] !~ /[ZX]/ && $field[19] eq $start;
    }
    my $text = `LC_ALL=C TZ=UTC0 ps -o state=,lstart= -p $pid 2>/dev/null </dev/null`;
    $text =~ s/^\s+|\s+$//g;
    $text =~ s/ +/_/g;
    $text =~ s/\n/_/g;
    return $text !~ /^Z/ && $text =~ /^[^_]*_\Q$start\E_?$/;
}
sub locked {
    my $dir = shift;
    for my $link (glob(quotemeta($dir) . "/lock.*")) {
        my $text = readlink $link;
        return 1 if defined $text && alive(split(/:/, $text, 3));
    }
    return 0;
}
my @live;
for (@ARGV) {
    my ($id, $run, $attempt, $offset) = split " ";
    push @live, { id => $id, dir => "$base/runs/$run/$attempt", at => $offset };
}
# Sends what the spool has; true if it had something. `$all`: up to its end, else a fair share.
sub drain {
    my ($one, $all) = @_;
    if (!$one->{out}) {
        open $one->{out}, "<", "$one->{dir}/out" or do { delete $one->{out}; return 0 };
        $one->{goal} = -s $one->{out};
        if ($one->{goal} < $one->{at}) { finish($one, "short $one->{goal}"); return 1 }
        $one->{seen} = 1;
        sysseek $one->{out}, $one->{at}, 0;
    }
    my $rounds = 0;
    while ($all || $rounds < 8) {
        my $n = sysread $one->{out}, my $data, 131072;
        last if !$n;
        put("$mark out $one->{id} $one->{at} $n\n$data");
        $one->{at} += $n;
        $rounds++;
    }
    return $rounds > 0;
}
sub finish {
    my ($one, $what) = @_;
    put("$mark $what $one->{id}\n") if $what !~ / /;
    if ($what =~ /^(\S+) (.*)$/s) { put("$mark $1 $one->{id} $2\n") }
    $one->{done} = 1;
}
# The record is looked for before the spool is read, so that all of the spool goes out before it.
sub record {
    my $one = shift;
    my $text = slurp("$one->{dir}/exit");
    return 0 if $text !~ /^exit (\d+) (\d+) (\d+) \.$/;
    my $words = "$1 $2 $3";
    drain($one, 1);
    if (!$one->{done}) {
        if ($one->{at} < $2) { finish($one, "short $one->{at}") } else { finish($one, "exit $words") }
    }
    return 1;
}
# Looks whether the attempt can still grow: needed only now and then.
sub judge {
    my $one = shift;
    if (!-d $one->{dir}) {
        drain($one, 1);
        return if $one->{done};
        return finish($one, $one->{seen} ? "deleted" : "never");
    }
    my @who = split " ", slurp("$one->{dir}/pid");
    if (@who != 6) {
        return if locked($one->{dir});
        return if slurp("$one->{dir}/pid") ne "";
        return finish($one, $one->{seen} ? "deleted" : "never");
    }
    $one->{seen} = 1;
    my ($pid, $start, $its, $holder, $born) = @who;
    return if alive($pid, $start, $its) || alive($holder, $born, $its);
    return if record($one);
    drain($one, 1);
    finish($one, $its eq $boot ? "gone" : "rebooted") if !$one->{done};
}
my ($idle, $wait) = (0, 0);
put("$mark following perl\n");
$_->{look} = 0 for @live;
while (1) {
    my $busy = 0;
    for my $one (@live) {
        next if $one->{done};
        if (-e "$one->{dir}/exit" && record($one)) { $busy = 1; next }
        $busy = 1 if drain($one, 0);
        next if $one->{done};
        # All that was there at the beginning went out; what comes is news.
        if (!$one->{caught} && (!$one->{out} || $one->{at} >= $one->{goal})) {
            $one->{caught} = 1;
            put("$mark caught $one->{id}\n");
        }
        # After about half a second without news, and at the beginning.
        if ($one->{look} <= 0) { judge($one); $one->{look} = 0.5 }
    }
    $idle = $busy ? 0 : $idle + $wait;
    # Soon after news 10 ms, then up to 50 ms: what a reader sees of a line is at most that old.
    $wait = $busy ? 0 : $idle < 1 ? 0.01 : $idle < 5 ? 0.02 : 0.05;
    $wait = 60 if !grep { !$_->{done} } @live;
    $_->{look} -= $wait for @live;
    my $ready = "";
    vec($ready, fileno(STDIN), 1) = 1;
    if (select($ready, undef, undef, $wait) > 0) {
        my $n = sysread STDIN, my $junk, 4096;
        exit 0 if !$n;
    }
}
