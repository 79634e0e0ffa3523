package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.RPCXException;
import java.util.List;
import org.junit.jupiter.api.Test;

class LocalFailureTest {
    private static final List<RPCXException> ALL = List.of(
            LocalFailure.notSent(RPCXException.Code.UNAVAILABLE, "a"),
            LocalFailure.full("b"),
            LocalFailure.unfit(RPCXException.Code.TOO_LARGE, "c"),
            LocalFailure.noRoom("d", RPCXException.Executed.EXECUTED),
            LocalFailure.unheard("e", RPCXException.Executed.MAYBE));

    @Test
    void eachSaysWhatThisSideKnows() {
        assertThat(ALL).hasSameSizeAs(LocalFailure.Why.values());
        for (LocalFailure.Why why : LocalFailure.Why.values()) {
            for (RPCXException end : ALL) {
                assertThat(LocalFailure.is(why, end)).isEqualTo(ALL.indexOf(end) == why.ordinal());
            }
            assertThat(LocalFailure.is(why, RPCXException.refused(RPCXException.Code.OVERLOADED, "b")))
                    .isFalse();
            assertThat(LocalFailure.is(why, null)).isFalse();
        }
        assertThat(LocalFailure.isNoRoom(LocalFailure.noRoom("d"))).isTrue();
        assertThat(LocalFailure.isNoRoom(LocalFailure.full("b"))).isFalse();
    }

    @Test
    void aCallerIsToldTheSameWithoutThisClass() {
        assertThat(ALL)
                .extracting(Object::toString)
                .containsExactly(
                        "RPCXException: UNAVAILABLE (NOT_EXECUTED): a",
                        "RPCXException: OVERLOADED (NOT_EXECUTED): b",
                        "RPCXException: TOO_LARGE (NOT_EXECUTED): c",
                        "RPCXException: OVERLOADED (EXECUTED): d",
                        "RPCXException: DEADLINE_EXCEEDED (MAYBE): e");
        for (RPCXException end : ALL) {
            RPCXException told = LocalFailure.asPublicException(end);
            assertThat(told)
                    .isExactlyInstanceOf(RPCXException.class)
                    .hasToString(end.toString())
                    .hasNoCause();
            assertThat(LocalFailure.asPublicException(told)).isSameAs(told);
        }
    }
}
