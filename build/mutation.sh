#!/usr/bin/env bash
# Mutation score of rpcx's slots, budgets, admission, streams and wires: how many small changes of the code its tests notice.
#   build/mutation.sh            all parts, one after the other: hours on two cores
#   build/mutation.sh charge …   these parts
# Prints each class with its mutants, those that were noticed and the share, then each survivor. Figures: docs/results/mutation.md.
set -eu
home=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
cd "$home"
. build/jdk.sh
find_jdk mutation
find_maven mutation

# Each part: its name, the classes that are changed, the tests that have to notice. Tests without sockets are the quickest to do so.
parts() {
  cat <<'PARTS'
charge    Charge,Account,Ledger,Ledger$*,RetryBudget                 ChargeTest,LedgerTest,RetryBudgetTest,ClaimsTest
slots     CallSlots                                                  CallSlotsAloneTest,ClientWireTest,OrphanSlotsTest
admission AdmissionLimit,AdmissionLimit$*,AddressGroups,Medians,GivenTimes,TakenTimes AdmissionStepsTest,AdmissionTrialTest,AdmissionStrangersTest,AdmissionSharesTest,AddressGroupsTest,MediansTest,GivenTimesTest,TakenTimesTest
numbers   Varint,WireError,ProtoFields                               VarintTest,WireErrorTest
streams   StreamSender*,StreamReceiver*,Serial                       StreamSenderTest,StreamReceiverTest,SerialTest
wire      WireConnection*,Outbound*                                  WireFramesTest,WireConnectionTest,WireHereTest,UnfinishedFramesTest,OutboundTest
small     KeepAlive,FloodGuard,Outbox,Streams,Streams$*,DueSoon,DueSoon$* KeepAliveLooksTest,FloodGuardTest,OutboxTest,StreamMethodsTest,DueSoonTest
server    ServerConnection*                                          WireServingTest,ServingBoundsTest,UnfinishedFramesTest,PostponedCallsTest,UnstartedCallsTest,EndsWithoutMemoryTest,CutOffCallsTest,LostCallsTest,ServerHereTest,RequestBuffersTest,IdlePlacesTest,CallTimeTest,ManyDeadlinesTest,WireEdgesTest,OutlastingFuturesTest,WaitingCallsTest,LeftoverTest,EachCallEndsTest
client    ClientConnection*,ClientStream*                            ClientWireTest,ClientHereTest,OrphanSlotsTest,ExtraConnectionsTest,ReadTurnTest,SimulationTest
classic   ClassicFrames*,ClassicWire*,ClassicConnection*             ClassicFramesTest,ClassicWireTest,ClassicConnectionTest,ClassicServingTest,ClassicServerConnectionTest,ClassicClientConnectionTest
classic2  ClassicServer*                                             ClassicServingTest,ClassicServerConnectionTest,ClassicCallEndsTest
classic3  ClassicClientConnection*,ClassicMethod*,ClassicParameter   ClassicClientConnectionTest,ClassicMethodTest,ClassicClientTest,ClassicParametersTest,EarlyCallsTest
claims    Claim,Claim$*,Claims,Claims$*                              ClaimsTest
sockets   SocketQueue,HalfClose,TlsRecords,TlsRecords$*,LoopTasks    SocketQueueAloneTest,HalfCloseTest,HalfCloseSocketTest,LastWordsTest,TlsRecordsTest,LoopTasksAloneTest
stages    Stages,Stages$*,Awaited,OwnStage,OwnStage$*,LostCalls      StagesTest,AwaitedTest,OwnStageTest,LostCallsAloneTest
begins    PostponedCalls,RunningHandlers,Uncharged                   PostponedCallsTest,RunningHandlersTest,UnchargedTest
calls     ServerCall,ServerCall$*                                    WireServingTest,ServingBoundsTest,LostCallsTest,UnstartedCallsTest,ServerHereTest,EndsWithoutMemoryTest,CutOffCallsTest,PostponedCallsTest,RequestBuffersTest,IdlePlacesTest,CallTimeTest,ManyDeadlinesTest,WireEdgesTest,OutlastingFuturesTest,WaitingCallsTest,LeftoverTest,EachCallEndsTest,UnspeakableErrorsTest,InterceptedCallsTest,WaitingRepliesTest,LeftOnThreadTest,CallThreadsTest
turns     Turns,Turns$*,RefusalBudget,PoolShares,PoolShares$*         TurnsTest,RefusalBudgetTest,PoolSharesTest
instances Coming,Openings,Openings$*,SharedWatch,SharedWatch$*,Health,Health$*,AnswerTimes,OwnEnd ComingTest,OpeningsTest,SharedWatchTest,HealthTest,AnswerTimesTest,OwnEndTest
hedges    Hedge,Hedge$*                                              RetriesTest,EachCallEndsTest,UnsentTrialsTest,HedgesAtTheEndOfAStackTest
outcall   ClientCall,ClientCall$*                                    ClientWireTest,OrphanSlotsTest,CallSlotsAloneTest,ClientHereTest,TokensPerAttemptTest,OverdueCallersTest
words     MethodDictionary,Settings,Metadata,MetadataFields*,FrozenMap,MethodShape MethodDictionaryTest,SettingsTest,MetadataTest,FrozenMapTest,MethodShapeTest,VarintTest
sniffer   Sniffer                                                    PrefaceTimeTest,EndsWithoutMemoryTest
chain     Chain,CallInvocation                                       ChainTest,ClientInterceptorsTest,InterceptedCallsTest
futures   BoundFuture,CallFuture                                     AwaitedTest,OwnStageTest,SharedFuturesTest,CarriedContextTest,ClientInterceptorsTest
contexts  TimedContext,HandledContext,CurrentCall                    TimedContextTest,CallStepsTest,CallThreadsTest,OwnStageTest,AwaitedTest,DeadlinesTest,KeptContextsTest,LazyStagesTest,InterceptedCallsTest
threads   CallThreads,CallThreads$*                                  CallStepsTest,CallThreadsTest,LostCallsTest,LeftoverTest,ServerHereTest,LeftOnThreadTest
ends      CallList,Leftover,LeftBehind,ConnectionThreads,MemoryReserve,BoundPublisher,BoundPublisher$* CallListTest,LeftoverTest,LedgerTest,AwaitedTest,LeftBehindAloneTest,ConnectionThreadsTest,MemoryReserveTest,BoundPublisherTest
faults    FaultyFrames*,FaultyPipe*                                  FaultyFramesTest,FaultyPipeTest
times     OwedTime,TurnHeap                                          OwedTimeTest,TurnHeapTest
overdue   OverdueCallers                                             OverdueCallersTest,OrphanSlotsTest
readturn  ReadTurn,ReadTurn$*                                        ReadTurnAloneTest,ReadTurnSocketTest,ClientHereTest,ReadTurnTest
writeturn WriteTurn                                                  WriteTurnAloneTest,WireHereTest,WireFramesTest,RacesTest,ServerHereTest
keys      codec.KeyHashes*                                           codec.KeyHashesTest,codec.KeyOrderTest,codec.MemoryTest
PARTS
}

# names with the package before each
qualified() { sed 's/[^,][^,]*/dev.rpcx.&/g' <<<"$1"; }

mvn -B -ntp -q -pl rpcx/rpcx test-compile
parts | while read -r name classes tests; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
    continue
  fi
  report=rpcx/rpcx/target/mutation/$name
  mkdir -p "$report"
  # maven reads standard input, which is the list of parts
  mvn -B -ntp -pl rpcx/rpcx -Pmutation org.pitest:pitest-maven:mutationCoverage -DtargetClasses="$(qualified "$classes")" \
    -DtargetTests="$(qualified "$tests")" -DreportsDirectory="$home/$report" </dev/null >"$report/log" 2>&1 ||
    echo "mutation: $name failed, see $report/log" >&2
  python3 build/mutation.py "$report/mutations.xml"
done
