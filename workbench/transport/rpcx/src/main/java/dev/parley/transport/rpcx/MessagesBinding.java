package dev.parley.transport.rpcx;

import static dev.parley.transport.rpcx.Binding.call;

import dev.parley.spi.messages.Messages;
import java.util.List;

/** The contract {@code messages}. */
final class MessagesBinding {
    static final Binding<MessagesClient> BINDING = Binding.of(
            Messages.CONTRACT,
            MessagesClient.class,
            MessagesService::new,
            List.of(
                    call(Messages.ONLY_TEXT, MessagesClient::onlyText, MessagesClient::sendOnlyText),
                    call(Messages.ALL_TYPES, MessagesClient::allTypes, MessagesClient::sendAllTypes),
                    call(Messages.GATHER_TEXT, MessagesClient::gatherText, MessagesClient::sendGatherText),
                    call(Messages.GATHER_TYPES, MessagesClient::gatherTypes, MessagesClient::sendGatherTypes)));

    private MessagesBinding() {}
}
