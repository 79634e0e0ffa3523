package dev.parley.transport.rpcx;

import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.rpcx.Method;
import dev.rpcx.RPCXServer;

/** The contract {@code messages} as a service. */
@RPCXServer("messages")
final class MessagesService {
    private final Handler handler;

    MessagesService(Handler handler) {
        this.handler = handler;
    }

    @Method
    TestModelOnlyText onlyText(TestModelOnlyText message) {
        return handle(Messages.ONLY_TEXT, message);
    }

    @Method
    TestModelAllTypesList allTypes(TestModelAllTypesList message) {
        return handle(Messages.ALL_TYPES, message);
    }

    @Method
    GatheredText gatherText(TestModelOnlyText message) {
        return handle(Messages.GATHER_TEXT, message);
    }

    @Method
    GatheredTypes gatherTypes(TestModelAllTypesList message) {
        return handle(Messages.GATHER_TYPES, message);
    }

    private <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        return Binding.answer(handler, operation, request);
    }
}
