#!/usr/bin/env bash
# Mutation score of rpcx's slots, budgets, admission, streams and wires: how many small changes of the code its tests notice.
#   build/mutation.sh            all parts, one after the other: hours on two cores
#   build/mutation.sh charge …   these parts
# Prints each class with its mutants, those that were noticed and the share, then each survivor. Figures: docs/results/mutation.md.
me=mutation
. "$(dirname "$(readlink -f "$0")")/preamble.sh"
cd "$home"
find_jdk
find_maven

# Each part: its name, the classes that are changed, the tests that have to notice. Tests without sockets are the quickest to do so.
parts() {
  cat <<'PARTS'
charge    Charge,Account,Ledger,Ledger$*,RetryBudget                 ChargeTest,LedgerTest,RetryBudgetTest,ClaimsTest
slots     CallSlots                                                  CallSlotsAloneTest,ClientWireTest,OrphanSlotsTest
admission AdmissionLimit,AdmissionLimit$*,AddressGroups,Medians,GivenTimes,HandlerTimeHistogram AdmissionStepsTest,AdmissionHalvedTest,AdmissionStrangersTest,AdmissionSharesTest,AddressGroupsTest,MediansTest,GivenTimesTest,HandlerTimeHistogramTest
numbers   Varint,WireError,ProtoFields                               VarintTest,WireErrorTest
streams   StreamSender*,StreamReceiver*,SerialExecutor               StreamSenderTest,StreamReceiverTest,SerialExecutorTest
wire      WireConnection*,Outbound*                                  WireFramesTest,WireConnectionTest,WireHereTest,UnfinishedFramesTest,OutboundTest
small     RequestReader,KeepAlive,FloodGuard,Outbox,Streams,Streams$*,DueSoon,DueSoon$* RequestReaderTest,KeepAliveLooksTest,FloodGuardTest,OutboxTest,StreamMethodsTest,DueSoonTest
server    ServerConnection*,Admission,SentReplies                    WireServingTest,ServingBoundsTest,UnfinishedFramesTest,PostponedCallsTest,UnstartedCallsTest,EndsWithoutMemoryTest,CutOffCallsTest,LostCallsTest,ServerHereTest,RequestBuffersTest,IdlePlacesTest,CallTimeTest,ManyDeadlinesTest,WireEdgesTest,OutlastingFuturesTest,WaitingCallsTest,LingeringChargeTest,EachCallEndsTest
client    ClientConnection*,ClientStream*                            ClientWireTest,ClientHereTest,OrphanSlotsTest,ExtraConnectionsTest,ReadTurnTest,SimulationTest
classic   ClassicFrames*,ClassicWire*,ClassicConnection*             ClassicFramesTest,ClassicWireTest,ClassicConnectionTest,ClassicServingTest,ClassicServerConnectionTest,ClassicClientConnectionTest
classic2  ClassicServer*                                             ClassicServingTest,ClassicServerConnectionTest,ClassicCallEndsTest
classic3  ClassicClientConnection*,ClassicMethod*,ClassicParameter   ClassicClientConnectionTest,ClassicMethodTest,ClassicClientTest,ClassicParametersTest,EarlyCallsTest
claims    Claim,Claim$*,Claims,Claims$*                              ClaimsTest
sockets   SocketQueue,HalfClose,TlsRecords,TlsRecords$*,LoopTasks    SocketQueueAloneTest,HalfCloseTest,HalfCloseSocketTest,LastWordsTest,TlsRecordsTest,LoopTasksAloneTest
stages    Stages,Stages$*,PendingResult,DetachableStage,DetachableStage$*,LostCalls StagesTest,PendingResultTest,DetachableStageTest,LostCallsAloneTest
begins    PostponedCalls,RunningHandlers,UnchargedAllowance          PostponedCallsTest,RunningHandlersTest,UnchargedAllowanceTest
calls     ServerCall,ServerCall$*,ServerSteps,ReplyWriter,ServerCallErrors             WireServingTest,ServingBoundsTest,LostCallsTest,UnstartedCallsTest,ServerHereTest,EndsWithoutMemoryTest,CutOffCallsTest,PostponedCallsTest,RequestBuffersTest,IdlePlacesTest,CallTimeTest,ManyDeadlinesTest,WireEdgesTest,OutlastingFuturesTest,WaitingCallsTest,LingeringChargeTest,EachCallEndsTest,UnspeakableErrorsTest,InterceptedCallsTest,WaitingRepliesTest,LeftOnThreadTest,CallThreadsTest
rotation  FrameScheduler,FrameScheduler$*,RefusalBudget,PoolShares,PoolShares$* FrameSchedulerTest,RefusalBudgetTest,PoolSharesTest
instances PendingConnection,ConnectThrottle,ConnectThrottle$*,SharedWatch,SharedWatch$*,Health,Health$*,AnswerTimes,LocalFailure PendingConnectionTest,ConnectThrottleTest,SharedWatchTest,HealthTest,AnswerTimesTest,LocalFailureTest
attempts  Attempts,ClientSteps,BlockingCall,FutureCall                 AttemptsTest,RetriesTest,ChooserTest,ClientWireTest,ClientHereTest,WaitingCallsTest,OrphanSlotsTest,EachCallEndsTest,UnsentTrialsTest
hedges    Hedge,Hedge$*                                              RetriesTest,EachCallEndsTest,UnsentTrialsTest,HedgesAtTheEndOfAStackTest
outcall   ClientCall,ClientCall$*,RequestWriter,RequestWriter$*,ReplyReader ClientWireTest,ExtraConnectionsTest,OrphanSlotsTest,CallSlotsAloneTest,ClientHereTest,TokensPerAttemptTest,OverdueCallersTest
words     MethodDictionary,Settings,Metadata,MetadataFields*,FrozenMap,MethodShape MethodDictionaryTest,SettingsTest,MetadataTest,FrozenMapTest,MethodShapeTest,VarintTest
sniffer   Sniffer                                                    PrefaceTimeTest,EndsWithoutMemoryTest
chain     Chain,CallInvocation                                       ChainTest,ClientInterceptorsTest,InterceptedCallsTest
futures   BoundFuture,CallFuture                                     PendingResultTest,DetachableStageTest,SharedFuturesTest,CarriedContextTest,ClientInterceptorsTest
contexts  TimedContext,HandledContext,CurrentCall                    TimedContextTest,CallStepsTest,CallThreadsTest,DetachableStageTest,PendingResultTest,DeadlinesTest,KeptContextsTest,LazyStagesTest,InterceptedCallsTest
threads   CallThreads,CallThreads$*                                  CallStepsTest,CallThreadsTest,LostCallsTest,LingeringChargeTest,ServerHereTest,LeftOnThreadTest
ends      CallList,LingeringCharge,OrphanedWork,ConnectionThreads,MemoryReserve,BoundPublisher,BoundPublisher$* CallListTest,LingeringChargeTest,LedgerTest,PendingResultTest,OrphanedWorkAloneTest,ConnectionThreadsTest,MemoryReserveTest,BoundPublisherTest
faults    FaultyFrames*,FaultyPipe*                                  FaultyFramesTest,FaultyPipeTest
times     ReadingClock,IndexedHeap                                   ReadingClockTest,IndexedHeapTest
overdue   OverdueCallers                                             OverdueCallersTest,OrphanSlotsTest
readturn  ReadTurn,ReadTurn$*,CloseWatch$ReadWait                                        ReadTurnAloneTest,ReadTurnSocketTest,ClientHereTest,ReadTurnTest
writeturn WriteTurn                                                  WriteTurnAloneTest,WireHereTest,WireFramesTest,RacesTest,ServerHereTest
keys      codec.KeyHashes*                                           codec.KeyHashesTest,codec.KeyOrderTest,codec.MemoryTest
PARTS
}

# names with the packages before each; the second dot keeps names apart of which one is the end of another
qualified() { sed 's/[^,][^,]*/dev.rpcx.&,dev.rpcx.*.&/g' <<<"$1"; }

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
