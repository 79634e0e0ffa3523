#!/usr/bin/env bash
# Mutation score of what counts, windows and judges in the workbench: how many small changes of the code its tests notice.
#   build/mutation-figures.sh          all parts, one after the other
#   build/mutation-figures.sh windows  these parts
# Prints each class with its mutants, those that were noticed and the share, then each survivor. Figures: docs/results/mutation-figures.md.
me=mutation
. "$(dirname "$(readlink -f "$0")")/preamble.sh"
cd "$home"
find_jdk
find_maven

# Each part: its name, its module, the classes that are changed, the tests that have to notice: none of them waits for real time
# but those of OpenDriverTest, for some tenths of a second.
parts() {
  cat <<'PARTS'
windows   analysis TrialWindow,Validity,Distribution                                     TrialWindowTest,ValidityTest,DistributionTest
cells     analysis CellSamples                                                           CellSamplesTest
possible  lab      Impossible                                                            ImpossibleTest
counts    load     Outcomes,Outcomes$*,Tally,Stretch                                        OutcomesTest,TallyTest
requests  load     Sender,Sender$*,Caller,Occupancy                                      SenderTest,LimitsOfATrialTest
limits    load     Stability,VoidReasons                                                 LimitsOfATrialTest,VoidReasonsTest
plans     load     Schedule,Script                                                       ScheduleTest,ScriptTest,LimitsOfATrialTest
engine    load     Engine,Engine$*                                                       EngineToldTest
drivers   load     ClosedDriver,ClosedDriver$*,OpenDriver,BurstDriver,RoundsDriver       EngineToldTest,OpenDriverTest
judges    analysis TTest,Contest,Contest$*                                               TTestTest,ContestArithmeticTest
samples   analysis Sample,Estimate,Redrawn,Redrawn$*,Comparison,Verdict                  SampleTest,VerdictTest
warmth    analysis Warmth,Warmth$*                                                       WarmthTest
runs      analysis RunRows,RunComparison                                                 RunRowsTest,RunComparisonTest
rehearsal lab      Rehearsal,Rehearsal$*,Slice,RehearsalTime                             RehearsalTest,RehearsalTimeTest
traffic   lab      Traffic,Traffic$*,TrafficLedger,ProcessorUse,Ceiling,Ceiling$*        TrafficTest,ProcessorUseTest,CeilingTest
steps     lab      StepFigures                                                           StepFiguresTest
claims    studies  Measured,Measured$*,Agreement,Judgement,Judgement$*,Claim,Expression,Expression$* MeasuredTest,AgreementTest,ClaimTest
PARTS
}

parts | while read -r name module classes tests; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
    continue
  fi
  qualified() { sed "s/[^,][^,]*/dev.parley.$module.&/g" <<<"$1"; }
  report=$home/target/mutation/$name
  mkdir -p "$report"
  # maven reads standard input, which is the list of parts
  mvn -B -ntp -pl "workbench/$module" -am test-compile org.pitest:pitest-maven:mutationCoverage \
    -DtargetClasses="$(qualified "$classes")" -DtargetTests="$(qualified "$tests")" -DreportsDirectory="$report" \
    </dev/null >"$report/log" 2>&1 ||
    echo "mutation: $name failed, see $report/log" >&2
  python3 build/mutation.py "$report/mutations.xml"
done
