package dev.parley.spi.messages;

import dev.parley.spi.Contract;
import dev.parley.spi.Operation;
import dev.parley.spi.Operation.Kind;
import java.util.List;

/**
 * Operations of the work {@code messages}. A service with at most one neighbour answers {@link #ONLY_TEXT} and
 * {@link #ALL_TYPES} with what the last service of the line answered; in a topology where some service has several
 * neighbours, {@link #GATHER_TEXT} and {@link #GATHER_TYPES} bring back each leaf's answer under its name.
 */
public final class Messages {
    public static final Operation<TestModelOnlyText, TestModelOnlyText> ONLY_TEXT =
            new Operation<>("onlyText", Kind.QUERY, TestModelOnlyText.class, TestModelOnlyText.class);
    public static final Operation<TestModelAllTypesList, TestModelAllTypesList> ALL_TYPES =
            new Operation<>("allTypes", Kind.QUERY, TestModelAllTypesList.class, TestModelAllTypesList.class);
    public static final Operation<TestModelOnlyText, GatheredText> GATHER_TEXT =
            new Operation<>("gatherText", Kind.QUERY, TestModelOnlyText.class, GatheredText.class);
    public static final Operation<TestModelAllTypesList, GatheredTypes> GATHER_TYPES =
            new Operation<>("gatherTypes", Kind.QUERY, TestModelAllTypesList.class, GatheredTypes.class);

    public static final Contract CONTRACT =
            new Contract("messages", List.of(ONLY_TEXT, ALL_TYPES, GATHER_TEXT, GATHER_TYPES));

    private Messages() {}
}
