package dev.parley.spi;

import java.util.List;

/**
 * The operations that every service of a work offers. Transports turn it into routes, a schema, stubs or queues. A
 * contract's records stand in this module, in a package named after it, so that transports carry them in their own
 * idiom.
 *
 * @param name in lower case, such as {@code messages}
 */
public record Contract(String name, List<Operation<?, ?>> operations) {
    public Contract {
        operations = List.copyOf(operations);
    }

    public Operation<?, ?> operation(String operationName) {
        for (Operation<?, ?> operation : operations) {
            if (operation.name().equals(operationName)) {
                return operation;
            }
        }
        throw new CallException(CallException.Code.NOT_FOUND, "no operation " + operationName + " in " + name);
    }
}
