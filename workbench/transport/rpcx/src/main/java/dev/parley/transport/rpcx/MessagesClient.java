package dev.parley.transport.rpcx;

import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import java.util.concurrent.CompletableFuture;

/** The contract {@code messages} as a caller sees it, blocking and not. */
@RPCXClient(remoteServerName = "messages")
interface MessagesClient {
    @Method
    TestModelOnlyText onlyText(TestModelOnlyText message);

    @Method
    TestModelAllTypesList allTypes(TestModelAllTypesList message);

    @Method
    GatheredText gatherText(TestModelOnlyText message);

    @Method
    GatheredTypes gatherTypes(TestModelAllTypesList message);

    @Method("onlyText")
    CompletableFuture<TestModelOnlyText> sendOnlyText(TestModelOnlyText message);

    @Method("allTypes")
    CompletableFuture<TestModelAllTypesList> sendAllTypes(TestModelAllTypesList message);

    @Method("gatherText")
    CompletableFuture<GatheredText> sendGatherText(TestModelOnlyText message);

    @Method("gatherTypes")
    CompletableFuture<GatheredTypes> sendGatherTypes(TestModelAllTypesList message);
}
