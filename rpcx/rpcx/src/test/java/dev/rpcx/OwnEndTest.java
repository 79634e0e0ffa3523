package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class OwnEndTest {
    private static final List<RPCXException> ALL = List.of(
            OwnEnd.left(RPCXException.Code.UNAVAILABLE, "a"),
            OwnEnd.full("b"),
            OwnEnd.unfit(RPCXException.Code.TOO_LARGE, "c"),
            OwnEnd.noRoom("d", RPCXException.Executed.EXECUTED),
            OwnEnd.unheard("e", RPCXException.Executed.MAYBE));

    @Test
    void eachSaysWhatThisSideKnows() {
        assertThat(ALL).hasSameSizeAs(OwnEnd.Why.values());
        for (OwnEnd.Why why : OwnEnd.Why.values()) {
            for (RPCXException end : ALL) {
                assertThat(OwnEnd.is(why, end)).isEqualTo(ALL.indexOf(end) == why.ordinal());
            }
            assertThat(OwnEnd.is(why, RPCXException.refused(RPCXException.Code.OVERLOADED, "b")))
                    .isFalse();
            assertThat(OwnEnd.is(why, null)).isFalse();
        }
        assertThat(OwnEnd.isNoRoom(OwnEnd.noRoom("d"))).isTrue();
        assertThat(OwnEnd.isNoRoom(OwnEnd.full("b"))).isFalse();
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
            RPCXException told = OwnEnd.told(end);
            assertThat(told)
                    .isExactlyInstanceOf(RPCXException.class)
                    .hasToString(end.toString())
                    .hasNoCause();
            assertThat(OwnEnd.told(told)).isSameAs(told);
        }
    }
}
