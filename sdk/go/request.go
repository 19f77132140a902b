package tollgate

import "encoding/json"

// A Request has the fields of the HTTP API. One must name the client or the endpoint.
type Request struct {
	ClientKey string `json:"client_key,omitempty"`
	APIKey    string `json:"api_key,omitempty"`
	UserID    string `json:"user_id,omitempty"`
	IP        string `json:"ip,omitempty"`
	Org       string `json:"org,omitempty"`
	Tier      string `json:"tier,omitempty"`
	// Endpoint is "METHOD /path", or "/path" for any method.
	Endpoint string `json:"endpoint,omitempty"`
	// Cost is 1 if nil; 0 only reads.
	Cost       *uint64           `json:"cost,omitempty"`
	Costs      Costs             `json:"costs,omitempty"`
	Peek       bool              `json:"peek,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Namespace  string            `json:"namespace,omitempty"`
}

// Costs are amounts of meters, such as tokens.
type Costs map[string]uint64

// Cost is for the field of that name: Request{Cost: tollgate.Cost(5)}.
func Cost(units uint64) *uint64 { return &units }

// bucket is the key of the fallback limiter, the most particular identity first.
func (r *Request) bucket() string {
	for _, part := range [][2]string{
		{"api_key", r.APIKey}, {"user_id", r.UserID}, {"client_key", r.ClientKey}, {"org", r.Org}, {"ip", r.IP},
	} {
		if part[1] != "" {
			return part[0] + ":" + part[1]
		}
	}
	return ""
}

func (r *Request) units() uint64 {
	if r.Cost != nil {
		return *r.Cost
	}
	if units, ok := r.Costs["requests"]; ok {
		return units
	}
	return 1
}

// query are the fields as parameters.
func (r *Request) query() (map[string]string, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	query := map[string]string{}
	for name, value := range members {
		if text, ok := value.(string); ok {
			query[name] = text
		}
	}
	return query, nil
}
